# What a program has of hotcell: its arguments, what it shows, and values that it shares.
module Hotcell
  # Values by name. The calls of a session share them, in every language; a program on its own has them to itself.
  @vars = {}

  class << self
    attr_reader :vars

    # The program's arguments.
    def args = ARGV

    # Prints values as they are shown.
    def display(*values) = values.each { |value| p value }
  end
end
