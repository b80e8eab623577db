//go:build profile && linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"syscall"
)

// init lets a benchmark take CPU profiles: SIGUSR1 starts one in the folder
// JUNCTOR_PROFILE, and the next SIGUSR1 stops it. The file has the suffix .part
// until it is complete. Profiles of the allocations before and after are
// written next to it, for go tool pprof -base. Released binaries are built
// without this.
func init() {
	dir := os.Getenv("JUNCTOR_PROFILE")
	if dir == "" {
		return
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGUSR1)
	go func() {
		for n := 1; ; n++ {
			<-signals
			name := fmt.Sprintf("%s/%d-%d.pprof", dir, os.Getpid(), n)
			f, err := os.Create(name + ".part")
			if err == nil {
				err = writeAllocs(name + ".allocs0")
			}
			if err == nil {
				err = pprof.StartCPUProfile(f)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "profile:", err)
				return
			}
			<-signals
			pprof.StopCPUProfile()
			f.Close()
			if err := errors.Join(writeAllocs(name+".allocs"), os.Rename(f.Name(), name)); err != nil {
				fmt.Fprintln(os.Stderr, "profile:", err)
			}
		}
	}()
}

// writeAllocs writes a profile of all allocations since the program started.
func writeAllocs(name string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(f, 0), f.Close())
}
