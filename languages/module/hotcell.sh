# What a program has of hotcell: what it shows, and values that it shares. Its arguments are "$@".

# Prints each of its arguments in a line of its own.
hotcell_display() {
  printf '%s\n' "$@"
}
