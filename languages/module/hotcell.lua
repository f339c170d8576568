-- What a program has of hotcell: its arguments, what it shows, values by name, tools that it may call.
local hotcell = { args = { (table.unpack or unpack)(arg or {}) }, vars = {} }

-- Prints values as they are shown.
function hotcell.display(...)
  for index = 1, select("#", ...) do
    print((select(index, ...)))
  end
end

-- Calls a tool of an upstream server with its arguments as JSON text, and returns JSON text:
-- `hotcell.call("github.list_issues", '{"repo": "x"}')`.
function hotcell.call(tool, arguments)
  local quote = function(text) return "'" .. text:gsub("'", "'\\''") .. "'" end
  local command = "mcp call " .. quote(tool) .. " " .. quote(arguments or "{}")
  local pipe = assert(io.popen(command .. " 2>&1; printf '\\n%d' $?"))
  local said, code = pipe:read("a"):match("^(.-)%s*\n(%d+)$")
  pipe:close()
  if code ~= "0" then
    error(code == "127" and "this run was given no servers: see `hotcell servers`" or said, 2)
  end
  return said
end

return hotcell
