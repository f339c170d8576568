//! One test binary on the real program: what users are promised, checked from outside.

mod attacks;
mod bad_input;
mod doctor;
mod faults;
mod languages;
mod limits;
mod readme;
mod report;
mod run;
mod runtimes;
mod seccomp;
mod streams;
mod support;
