require 'json'; require 'set'; require 'time'
puts JSON.generate(a: [1, nil]), Set[1].inspect, Gem::VERSION == `ruby -e 'print Gem::VERSION'`, Gem.loaded_specs.keys.sort.inspect
