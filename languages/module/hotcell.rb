# What a program has of hotcell: its arguments, what it shows, values that it shares, tools that it may call.
module Hotcell
  # Values by name. The calls of a session share them, in every language; a program on its own has them to itself.
  @vars = {}

  class << self
    attr_reader :vars

    # The program's arguments.
    def args = ARGV

    # Prints values as they are shown.
    def display(*values) = values.each { |value| p value }

    # Calls a tool of an upstream server: `Hotcell.call("github.list_issues", repo: "x")`.
    def call(tool, **arguments)
      require 'json'
      require 'open3'
      out, said, done = Open3.capture3('mcp', 'call', tool, '-', stdin_data: JSON.generate(arguments))
      raise said.strip unless done.success?
      JSON.parse(out)
    rescue Errno::ENOENT
      raise 'this run was given no servers: see `hotcell servers`'
    end
  end
end
