#include "textflag.h"

// The keeper: see keeper_linux.go for what it is and keeper_linux_arm64.s for
// its twin. It is never called; its bytes are copied into a program of their
// own. So it is position-independent, uses no Go symbol and never returns.
//
// On entry the stack holds argc, argv and envp as the kernel lays them out:
//   argv[0] a name for ps, argv[1] the mode ('m', 'n' or 's'; after 'm' may
//   follow the path of a folder to hide), argv[2] the path to execute,
//   argv[3…] the argv of that program.
// File 3 is a pipe that takes the errno when the program cannot be started,
// with bit 16 set when the folder cannot be hidden.
//
// R12 entry stack, R13 mode, R14 child, BX levels of keepers from here down
// (2 for the init of a namespace, 1 for the direct parent of the program),
// R15 scratch memory below the stack: 0 general, 16 all signals, 24 the mask
// that we came with, 64 a page to read into.

#define SYS(nr) MOVL $nr, AX; SYSCALL

TEXT ·keeper(SB),NOSPLIT|NOFRAME,$0
	MOVQ	SP, R12
	LEAQ	-8192(SP), R15
	MOVQ	16(R12), AX
	MOVBQZX	(AX), R13

	// prctl(PR_SET_NAME, "junctor-keep")
	MOVQ	$0x2d726f74636e756a, AX
	MOVQ	AX, 0(R15)
	MOVQ	$0x7065656b, AX
	MOVQ	AX, 8(R15)
	MOVL	$15, DI
	MOVQ	R15, SI
	SYS(157)

	// Signals are waited for, not handled: a blocked signal reaches even
	// the init of a namespace. rt_sigprocmask(SIG_SETMASK, all, &old, 8)
	MOVQ	$-1, AX
	MOVQ	AX, 16(R15)
	MOVL	$2, DI
	LEAQ	16(R15), SI
	LEAQ	24(R15), DX
	MOVL	$8, R10
	SYS(14)

	// fcntl(3, F_SETFD, FD_CLOEXEC)
	MOVL	$3, DI
	MOVL	$2, SI
	MOVL	$1, DX
	SYS(72)

	MOVL	$2, BX
	CMPQ	R13, $'m'
	JEQ	mounts
	CMPQ	R13, $'n'
	JEQ	fork

	// prctl(PR_SET_CHILD_SUBREAPER, 1)
	MOVL	$1, BX
	MOVL	$36, DI
	MOVL	$1, SI
	SYS(157)
	JMP	fork

mounts:
	// A /proc of our own, so that the pids in it are those of the
	// namespace. First no mount may travel back to the host, or it would
	// lose its own /proc: mount(nil, "/", nil, MS_REC|MS_SLAVE, nil)
	MOVQ	$0x2f, AX
	MOVQ	AX, 0(R15)
	XORL	DI, DI
	MOVQ	R15, SI
	XORL	DX, DX
	MOVL	$0x84000, R10
	XORL	R8, R8
	SYS(165)
	TESTQ	AX, AX
	JNE	shared
	// mount("proc", "/proc", "proc", NOSUID|NODEV|NOEXEC, nil); where it is
	// refused the host's /proc stays, which most programs never notice.
	MOVQ	$0x636f72702f, AX
	MOVQ	AX, 0(R15)
	MOVQ	R15, SI
	LEAQ	1(R15), DI
	LEAQ	1(R15), DX
	MOVL	$14, R10
	XORL	R8, R8
	SYS(165)
	// An empty folder over the one to hide:
	// mount("tmpfs", argv[1]+1, "tmpfs", RDONLY|NOSUID|NODEV|NOEXEC, "mode=700")
	MOVQ	16(R12), SI
	INCQ	SI
	CMPB	(SI), $0
	JEQ	mounted
	MOVQ	$0x7366706d74, AX
	MOVQ	AX, 64(R15)
	MOVQ	$0x3030373d65646f6d, AX
	MOVQ	AX, 72(R15)
	MOVQ	$0, 80(R15)
	LEAQ	64(R15), DI
	LEAQ	64(R15), DX
	MOVL	$15, R10
	LEAQ	72(R15), R8
	SYS(165)
	TESTQ	AX, AX
	JNE	visible
mounted:
	// The right to mount is not for the program:
	// prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	MOVL	$47, DI
	MOVL	$4, SI
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	SYS(157)

fork:
	// clone(SIGCHLD)
	MOVL	$17, DI
	XORL	SI, SI
	XORL	DX, DX
	XORL	R10, R10
	XORL	R8, R8
	SYS(56)
	TESTQ	AX, AX
	JEQ	child
	JLT	failed
	MOVQ	AX, R14

	// The program alone holds its pipes: close(0…3)
	XORL	DI, DI
	SYS(3)
	MOVL	$1, DI
	SYS(3)
	MOVL	$2, DI
	SYS(3)
	MOVL	$3, DI
	SYS(3)

wait:
	// rt_sigtimedwait(all, nil, nil, 8)
	LEAQ	16(R15), DI
	XORL	SI, SI
	XORL	DX, DX
	MOVL	$8, R10
	SYS(128)
	CMPQ	AX, $17
	JEQ	reap
	TESTQ	AX, AX
	JLE	wait
	CMPQ	R13, $'s'
	JNE	forward
	CMPQ	AX, $12
	JEQ	ordered

forward:
	// To the program's whole group, or to the keeper between: kill(child, sig)
	MOVQ	AX, SI
	MOVQ	R14, DI
	CMPQ	BX, $1
	JNE	one
	NEGQ	DI
	SYS(62)
	TESTQ	AX, AX
	JEQ	wait
	MOVQ	R14, DI
one:
	SYS(62)
	JMP	wait

reap:
	// wait4(-1, &status, WNOHANG, nil), orphans included
	MOVQ	$-1, DI
	MOVQ	R15, SI
	MOVL	$1, DX
	XORL	R10, R10
	SYS(61)
	TESTQ	AX, AX
	JLE	wait
	CMPQ	AX, R14
	JNE	reap

	// The program ended; its code, or 128 + signal, is ours.
	MOVL	0(R15), DI
	MOVL	DI, AX
	ANDL	$0x7f, AX
	JEQ	exited
	LEAL	128(AX), DI
	JMP	ended
exited:
	SHRL	$8, DI
	ANDL	$0xff, DI
ended:
	CMPQ	R13, $'s'
	JEQ	sweep
	// The kernel kills what is left of a namespace when its init ends.
	SYS(231)

ordered:
	MOVL	$137, DI
sweep:
	// Whatever is orphaned becomes our child, so killing children until
	// there are none leaves no descendant. R14 is the code to end with.
	MOVQ	R14, AX
	MOVL	DI, R14
	MOVQ	AX, DI
	NEGQ	DI
	MOVL	$9, SI
	SYS(62)
again:
	// "/proc/thread-self/children"
	MOVQ	$0x68742f636f72702f, AX
	MOVQ	AX, 64(R15)
	MOVQ	$0x6c65732d64616572, AX
	MOVQ	AX, 72(R15)
	MOVQ	$0x72646c6968632f66, AX
	MOVQ	AX, 80(R15)
	MOVQ	$0x6e65, AX
	MOVQ	AX, 88(R15)
	MOVQ	$-100, DI
	LEAQ	64(R15), SI
	XORL	DX, DX
	XORL	R10, R10
	SYS(257)
	TESTQ	AX, AX
	JLT	lost
	MOVQ	AX, R8
	// read(file, page, 4096); close(file)
	MOVQ	R8, DI
	LEAQ	64(R15), SI
	MOVL	$4096, DX
	SYS(0)
	MOVQ	AX, R9
	MOVQ	R8, DI
	SYS(3)
	LEAQ	64(R15), R8
	ADDQ	R8, R9
number:
	XORL	DI, DI
digit:
	CMPQ	R8, R9
	JGE	killed
	MOVBQZX	(R8), AX
	INCQ	R8
	SUBQ	$'0', AX
	JLT	space
	IMULQ	$10, DI
	ADDQ	AX, DI
	JMP	digit
space:
	// Only a number that a space ends is whole.
	TESTQ	DI, DI
	JEQ	number
	MOVL	$9, SI
	SYS(62)
	JMP	number
killed:
	// wait4(-1, nil, 0, nil) until ECHILD
	MOVQ	$-1, DI
	XORL	SI, SI
	XORL	DX, DX
	XORL	R10, R10
	SYS(61)
	TESTQ	AX, AX
	JGT	again
lost:
	MOVL	R14, DI
	SYS(231)

child:
	DECQ	BX
	JNE	fork
	// setsid(): a group of its own, and no terminal to take over
	SYS(112)
	// prctl(PR_SET_PDEATHSIG, SIGKILL)
	MOVL	$1, DI
	MOVL	$9, SI
	SYS(157)
	// rt_sigprocmask(SIG_SETMASK, &old, nil, 8)
	MOVL	$2, DI
	LEAQ	24(R15), SI
	XORL	DX, DX
	MOVL	$8, R10
	SYS(14)
	// execve(argv[2], argv+3, envp)
	MOVQ	24(R12), DI
	LEAQ	32(R12), SI
	MOVQ	0(R12), AX
	LEAQ	16(R12)(AX*8), DX
	SYS(59)
failed:
	NEGQ	AX
report:
	// write(3, &errno, 4); exit_group(127)
	MOVL	AX, 0(R15)
	MOVL	$3, DI
	MOVQ	R15, SI
	MOVL	$4, DX
	SYS(1)
	MOVL	$127, DI
	SYS(231)

shared:
	// Mounts would travel to the host, so there are none.
	MOVQ	16(R12), SI
	CMPB	1(SI), $0
	JEQ	mounted
visible:
	NEGQ	AX
	ORL	$0x10000, AX
	JMP	report

	// keeperEnd
	BYTE $'j'; BYTE $'u'; BYTE $'n'; BYTE $'c'; BYTE $'t'; BYTE $'o'; BYTE $'r'; BYTE $0
	BYTE $'e'; BYTE $'n'; BYTE $'d'; BYTE $0; BYTE $0xde; BYTE $0xc0; BYTE $0xad; BYTE $0x0b

// The address of the code itself: a reference from Go would give that of a
// wrapper around it.
DATA ·keeperPC+0(SB)/8, $·keeper(SB)
GLOBL ·keeperPC(SB), NOPTR, $8
