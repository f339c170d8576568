import hotcell from './index.cjs';

export const { args, display, tools, vars } = hotcell;
export default hotcell;
