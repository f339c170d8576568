# frozen_string_literal: true
begin
  'x' << 'y'
rescue => e
  p e
end
