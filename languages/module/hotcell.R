# What a program has of hotcell: its arguments, what it shows, values by name, tools that it may call.
hotcell <- list(
  # The program's arguments.
  args = commandArgs(trailingOnly = TRUE),
  # Prints values as they are shown.
  display = function(...) invisible(lapply(list(...), print)),
  # Calls a tool of an upstream server with its arguments as JSON text, and returns JSON text: hotcell$call("github.list_issues", '{"repo": "x"}').
  call = function(tool, arguments = "{}") {
    if (!nzchar(Sys.which("mcp"))) stop("this run was given no servers: see `hotcell servers`", call. = FALSE)
    words <- c("call", shQuote(tool), shQuote(arguments))
    said <- suppressWarnings(system2("mcp", words, stdout = TRUE, stderr = TRUE))
    if (!is.null(attr(said, "status"))) stop(paste(said, collapse = "\n"), call. = FALSE)
    paste(said, collapse = "\n")
  },
  # Values by name, of this program alone.
  vars = new.env()
)
