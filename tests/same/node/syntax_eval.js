eval("let = = 1");
