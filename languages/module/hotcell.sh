# What a program has of hotcell: what it shows, and tools that it may call. Its arguments are "$@", its variables are values by name.

# Prints each of its arguments in a line of its own.
hotcell_display() {
  printf '%s\n' "$@"
}

# Calls a tool of an upstream server and prints its result as JSON: hotcell_call github.list_issues repo=x
hotcell_call() {
  command -v mcp >/dev/null || { echo 'this run was given no servers: see `hotcell servers`' >&2; return 4; }
  mcp call "$@"
}
