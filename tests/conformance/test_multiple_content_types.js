// --- tool
// description = "Returns a text, an image and a resource, in this order"
// ---
const hotcell = require('./hotcell.js');

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';

console.log('Multiple content types test:');
hotcell.image(Buffer.from(png, 'base64'));
hotcell.resource('test://mixed-content-resource', '{"test":"data","value":123}', 'application/json');
