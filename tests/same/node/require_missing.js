require("no-such-package");
