require 'no_such_library'
