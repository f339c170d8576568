console.log(arguments.length, typeof arguments[1], require("module").wrapper);
