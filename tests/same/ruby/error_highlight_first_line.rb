  [1, 2].frist(2).map { |x| x.undefined_thing } + 1
