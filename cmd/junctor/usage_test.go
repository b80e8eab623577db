package main

import (
	"errors"
	"testing"

	"github.com/spf13/cobra"
)

// TestWrongNumberOfArgumentsIsUsageError: cobra's own checks of arguments must
// not be used, because their errors lead to a different exit code.
func TestWrongNumberOfArgumentsIsUsageError(t *testing.T) {
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		for _, n := range []int{0, 1, 2, 50} {
			if err := cmd.ValidateArgs(make([]string, n)); err != nil {
				if _, ok := errors.AsType[usageError](err); !ok {
					t.Errorf("%s with %d arguments: %v is no usage error", cmd.CommandPath(), n, err)
				}
			}
		}
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(rootCommand(osEnvironment()))
}
