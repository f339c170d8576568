//! Tests the walls from inside a real cell.
