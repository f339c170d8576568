// --- tool
// description = "Asks two things, one after the other"
// ---
const hotcell = require('./hotcell.js');

const first = hotcell.ask('step1', 'Step 1: What is your name?', { name: { type: 'string' } });
const second = hotcell.ask('step2', 'Step 2: What is your favorite color?', { color: { type: 'string' } });
console.log(`${first?.name} likes ${second?.color}.`);
