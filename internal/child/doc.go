// Package child starts programs that leave no survivor.
//
// A [Launcher] promises that everything a program started is gone when the
// program ends, when it is stopped, and when this process dies, be it by
// kill -9: its children, their children, and those that forked twice and took
// a session of their own. How far the promise can be kept depends on what the
// system allows; [Isolation] says which way was taken.
//
// The package knows pipes, environments and signals, and nothing of what is
// spoken through the pipes.
package child
