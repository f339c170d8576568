throw new TypeError("from a .cjs file");
