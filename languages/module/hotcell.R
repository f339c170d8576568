# What a program has of hotcell: its arguments, what it shows, and values that it shares.
hotcell <- list(
  # The program's arguments.
  args = commandArgs(trailingOnly = TRUE),
  # Prints values as they are shown.
  display = function(...) invisible(lapply(list(...), print)),
  # Values by name, of this program alone.
  vars = new.env()
)
