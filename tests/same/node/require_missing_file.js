require("./nowhere.js");
