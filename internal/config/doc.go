// Package config finds, reads, checks, watches and edits the configuration
// file, and joins it with the environment.
//
// It promises that every problem is reported at once, with its line and key;
// that a file which nobody named is not used before somebody trusted it; and
// that an edit keeps the comments, the order and the look of the file. It
// takes the shapes that other programs write as they are.
//
// What the settings mean is not known here: each is checked by the package
// that owns it. The package reads no environment of its own; the caller hands
// in what it may look at ([Options]).
package config
