// --- tool
// description = "Returns an embedded resource"
// ---
const hotcell = require('./hotcell.js');

hotcell.resource('test://embedded-resource', 'This is an embedded resource content.', 'text/plain');
