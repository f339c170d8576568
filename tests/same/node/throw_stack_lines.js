console.log(new Error("x").stack);
