p DATA.pos, DATA.read, DATA.path
__END__
one
two
