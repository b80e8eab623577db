package child

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

const (
	pathSeparators = `/\:`
	defaultPath    = `C:\Windows\system32;C:\Windows`
)

// system starts programs in job objects.
type system struct{}

func (*system) isolation(forker) Isolation { return Job }

// start creates the program suspended, so that nothing can escape before it is
// in its job.
func (*system) start(command func() *exec.Cmd, _, _ string, fork forker) (*exec.Cmd, processGroup, error) {
	cmd := command()
	cmd.SysProcAttr = &syscall.SysProcAttr{
		CreationFlags: windows.CREATE_SUSPENDED | windows.CREATE_NEW_PROCESS_GROUP | windows.CREATE_NO_WINDOW,
	}
	if isBatch(cmd.Path) {
		// Batch files (npx.cmd) are run by cmd.exe, which has its own rules for
		// parsing the command line.
		line := batchLine(cmd.Path, cmd.Args[1:])
		cmd.Path = lookup(cmd.Env, "COMSPEC")
		if cmd.Path == "" {
			cmd.Path = `C:\Windows\system32\cmd.exe`
		}
		cmd.SysProcAttr.CmdLine = line
	}
	job, err := newJob()
	if err != nil {
		return nil, nil, err
	}
	if err := fork(cmd); err != nil {
		windows.CloseHandle(job)
		return nil, nil, err
	}
	if err := assignToJob(job, uint32(cmd.Process.Pid)); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		windows.CloseHandle(job)
		return nil, nil, err
	}
	return cmd, &jobGroup{process: cmd.Process, job: job}, nil
}

// newJob creates a job that ends when its last handle is closed, and so with
// this process.
func newJob() (windows.Handle, error) {
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0, fmt.Errorf("create a job object: %w", err)
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))); err != nil {
		windows.CloseHandle(job)
		return 0, fmt.Errorf("limit a job object: %w", err)
	}
	return job, nil
}

// assignToJob assigns the suspended process to the job and resumes it.
func assignToJob(job windows.Handle, pid uint32) error {
	const rights = windows.PROCESS_SET_QUOTA | windows.PROCESS_TERMINATE | windows.PROCESS_SUSPEND_RESUME
	process, err := windows.OpenProcess(rights, false, pid)
	if err != nil {
		return fmt.Errorf("open the process: %w", err)
	}
	defer windows.CloseHandle(process)
	if err := windows.AssignProcessToJobObject(job, process); err != nil {
		return fmt.Errorf("assign the process to its job: %w", err)
	}
	resume := windows.NewLazySystemDLL("ntdll.dll").NewProc("NtResumeProcess")
	if status, _, _ := resume.Call(uintptr(process)); status != 0 {
		return fmt.Errorf("wake the process: %w", windows.NTStatus(status))
	}
	return nil
}

// jobGroup is a program with its descendants in a job.
type jobGroup struct {
	process *os.Process
	job     windows.Handle
	once    sync.Once
}

func (j *jobGroup) pid() int             { return j.process.Pid }
func (j *jobGroup) isolation() Isolation { return Job }
func (j *jobGroup) hides() bool          { return false }

// terminate does nothing: there is no graceful way to terminate a process
// without a console, other than closing its stdin.
func (j *jobGroup) terminate() {}

func (j *jobGroup) kill()  { j.once.Do(func() { windows.CloseHandle(j.job) }) }
func (j *jobGroup) ended() { j.kill() }

func signalOf(*os.ProcessState) string { return "" }
