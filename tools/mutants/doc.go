// Package mutants has bugs that once got past all tests, in *.txt. Its tests
// plant them again, one at a time, and report which the tests of the library
// no longer notice.
package mutants
