process.reallyExit(8);
