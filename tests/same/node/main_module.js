console.log(require.main === module, module.id, module.filename, module.loaded, module.parent, module.children.length);
