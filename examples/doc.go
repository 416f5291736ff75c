// Package examples has no code of its own. Its directories are programs of less than 80
// lines, each with a test; README.md is the guide that shows them. The tests here check
// that the guide shows the programs as they are, and which modules they link.
package examples
