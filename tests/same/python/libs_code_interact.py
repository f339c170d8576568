# stdin: "y = 2\nprint(y * 21)\n"
import code
code.interact(banner="", exitmsg="bye", local={})
