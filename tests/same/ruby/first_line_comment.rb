# a comment
def f = raise('x')
p method(:f).source_location, DATA.pos, DATA.read
f
__END__
rest
