//go:build !race

package tool

const overwrite = false
