//go:build race

package tool

// overwrite makes Return overwrite the memory, so that tests detect bytes that
// were retained without a copy.
const overwrite = true
