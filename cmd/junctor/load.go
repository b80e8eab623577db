package main

import (
	"errors"
	"fmt"
	"strings"

	"junctor/internal/config"
	"junctor/internal/terminal"
)

// workDirPolicy specifies whether a command looks for a configuration in the
// working folder. Programs started by clients must not: see config.Options.
type workDirPolicy bool

const (
	useWorkDir    workDirPolicy = true
	ignoreWorkDir workDirPolicy = false
	trustQuestion               = "Use this file? It was found in the current folder, and using it runs the programs it names. [y/N] "
)

// options returns everything outside the file on which the configuration
// depends.
func (c *cli) options(look workDirPolicy) config.Options {
	o := config.Options{
		File: c.configFile, LookupEnv: c.Lookup, BaseDir: c.workDir, UserDir: c.userDir, Home: c.home,
	}
	if look {
		o.WorkDir = c.workDir
	}
	if c.IsInput {
		o.Trust = c.askTrust
	}
	if c.LogLevel != "" {
		o.Overrides = append(o.Overrides, config.Override{Key: "log.level", Value: c.LogLevel, Source: "--log-level"})
	}
	return o
}

// load reads the configuration.
func (c *cli) load(o config.Options) (*config.Config, error) {
	cfg, _, err := config.Load(o)
	return cfg, asUsageError(err)
}

// asUsageError converts an error that is caused only by flags into a usage
// error.
func asUsageError(err error) error {
	if wrong, ok := errors.AsType[*config.Error](err); ok && wrong.OfFlags() {
		return usageError{err}
	}
	return err
}

// loadAndReport is load for long-running commands: it also prints notes about
// the file. In short commands these would be noise; config check prints them
// too.
func (c *cli) loadAndReport(o config.Options) (*config.Config, error) {
	cfg, notes, err := config.Load(o)
	if err == nil {
		c.printNotes(notes)
	}
	return cfg, asUsageError(err)
}

func (c *cli) printNotes(notes []config.Note) {
	for _, n := range notes {
		c.Note("note: %s", n)
	}
}

// askTrust asks the user at the terminal whether to use a file in the working
// folder.
func (c *cli) askTrust(r config.TrustRequest) (bool, error) {
	if len(r.Variables) > 0 {
		fmt.Fprintf(c.Err, "%s, found in the current folder, sets %s.\n", r.Path, strings.Join(r.Variables, ", "))
		return c.Confirm("Use these variables? [y/N] ")
	}
	fmt.Fprintf(c.Err, "%s would start or connect to:\n", r.Path)
	for _, line := range r.Starts {
		fmt.Fprintln(c.Err, "  "+terminal.OneLine(line))
	}
	return c.Confirm(trustQuestion)
}
