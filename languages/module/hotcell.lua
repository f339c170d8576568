-- What a program has of hotcell: its arguments, what it shows, and values that it shares.
local hotcell = { args = { (table.unpack or unpack)(arg or {}) }, vars = {} }

-- Prints values as they are shown.
function hotcell.display(...)
  for index = 1, select("#", ...) do
    print((select(index, ...)))
  end
end

return hotcell
