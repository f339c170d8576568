console.log("html comment", 1) <!-- a comment
