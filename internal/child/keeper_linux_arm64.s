#include "textflag.h"

// The keeper: see keeper_linux.go for what it is and keeper_linux_amd64.s for
// the same steps with more words.
//
// R19 entry stack, R20 mode, R21 child, R22 levels of keepers from here down,
// R23 scratch memory below the stack: 0 general, 16 all signals, 24 the mask
// that we came with, 64 a page to read into.

#define SYS(nr) MOVD $nr, R8; SVC

TEXT ·keeper(SB),NOSPLIT|NOFRAME,$0
	MOVD	RSP, R19
	SUB	$8192, R19, R23
	MOVD	16(R19), R0
	MOVBU	(R0), R20

	// prctl(PR_SET_NAME, "junctor-keep")
	MOVD	$0x2d726f74636e756a, R0
	MOVD	R0, 0(R23)
	MOVD	$0x7065656b, R0
	MOVD	R0, 8(R23)
	MOVD	$15, R0
	MOVD	R23, R1
	SYS(167)

	// rt_sigprocmask(SIG_SETMASK, all, &old, 8)
	MOVD	$-1, R0
	MOVD	R0, 16(R23)
	MOVD	$2, R0
	ADD	$16, R23, R1
	ADD	$24, R23, R2
	MOVD	$8, R3
	SYS(135)

	// fcntl(3, F_SETFD, FD_CLOEXEC)
	MOVD	$3, R0
	MOVD	$2, R1
	MOVD	$1, R2
	SYS(25)

	MOVD	$2, R22
	CMP	$'m', R20
	BEQ	mounts
	CMP	$'n', R20
	BEQ	fork

	// prctl(PR_SET_CHILD_SUBREAPER, 1)
	MOVD	$1, R22
	MOVD	$36, R0
	MOVD	$1, R1
	SYS(167)
	B	fork

mounts:
	// mount(nil, "/", nil, MS_REC|MS_SLAVE, nil)
	MOVD	$0x2f, R0
	MOVD	R0, 0(R23)
	MOVD	$0, R0
	MOVD	R23, R1
	MOVD	$0, R2
	MOVD	$0x84000, R3
	MOVD	$0, R4
	SYS(40)
	CBNZ	R0, shared
	// mount("proc", "/proc", "proc", NOSUID|NODEV|NOEXEC, nil)
	MOVD	$0x636f72702f, R0
	MOVD	R0, 0(R23)
	ADD	$1, R23, R0
	MOVD	R23, R1
	ADD	$1, R23, R2
	MOVD	$14, R3
	MOVD	$0, R4
	SYS(40)
	// mount("tmpfs", argv[1]+1, "tmpfs", RDONLY|NOSUID|NODEV|NOEXEC, "mode=700")
	MOVD	16(R19), R1
	ADD	$1, R1, R1
	MOVBU	(R1), R0
	CBZ	R0, mounted
	MOVD	$0x7366706d74, R0
	MOVD	R0, 64(R23)
	MOVD	$0x3030373d65646f6d, R0
	MOVD	R0, 72(R23)
	MOVD	$0, R0
	MOVD	R0, 80(R23)
	ADD	$64, R23, R0
	ADD	$64, R23, R2
	MOVD	$15, R3
	ADD	$72, R23, R4
	SYS(40)
	CBNZ	R0, visible
mounted:
	// prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	MOVD	$47, R0
	MOVD	$4, R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	SYS(167)

fork:
	// clone(SIGCHLD)
	MOVD	$17, R0
	MOVD	$0, R1
	MOVD	$0, R2
	MOVD	$0, R3
	MOVD	$0, R4
	SYS(220)
	CBZ	R0, child
	CMP	$0, R0
	BLT	failed
	MOVD	R0, R21

	// close(0…3)
	MOVD	$0, R0
	SYS(57)
	MOVD	$1, R0
	SYS(57)
	MOVD	$2, R0
	SYS(57)
	MOVD	$3, R0
	SYS(57)

wait:
	// rt_sigtimedwait(all, nil, nil, 8)
	ADD	$16, R23, R0
	MOVD	$0, R1
	MOVD	$0, R2
	MOVD	$8, R3
	SYS(137)
	CMP	$17, R0
	BEQ	reap
	CMP	$0, R0
	BLE	wait
	CMP	$'s', R20
	BNE	forward
	CMP	$12, R0
	BEQ	ordered

forward:
	// kill(child, sig)
	MOVD	R0, R1
	MOVD	R21, R0
	CMP	$1, R22
	BNE	one
	NEG	R0, R0
	SYS(129)
	CBZ	R0, wait
	MOVD	R21, R0
one:
	SYS(129)
	B	wait

reap:
	// wait4(-1, &status, WNOHANG, nil)
	MOVD	$-1, R0
	MOVD	R23, R1
	MOVD	$1, R2
	MOVD	$0, R3
	SYS(260)
	CMP	$0, R0
	BLE	wait
	CMP	R21, R0
	BNE	reap

	MOVWU	0(R23), R1
	AND	$0x7f, R1, R0
	CBZ	R0, exited
	ADD	$128, R0, R0
	B	ended
exited:
	LSR	$8, R1, R0
	AND	$0xff, R0, R0
ended:
	CMP	$'s', R20
	BEQ	sweep
	SYS(94)

ordered:
	MOVD	$137, R0
sweep:
	// R21 is the code to end with.
	NEG	R21, R2
	MOVD	R0, R21
	MOVD	R2, R0
	MOVD	$9, R1
	SYS(129)
again:
	// "/proc/thread-self/children"
	MOVD	$0x68742f636f72702f, R0
	MOVD	R0, 64(R23)
	MOVD	$0x6c65732d64616572, R0
	MOVD	R0, 72(R23)
	MOVD	$0x72646c6968632f66, R0
	MOVD	R0, 80(R23)
	MOVD	$0x6e65, R0
	MOVD	R0, 88(R23)
	MOVD	$-100, R0
	ADD	$64, R23, R1
	MOVD	$0, R2
	MOVD	$0, R3
	SYS(56)
	CMP	$0, R0
	BLT	lost
	MOVD	R0, R24
	// read(file, page, 4096); close(file)
	ADD	$64, R23, R1
	MOVD	$4096, R2
	SYS(63)
	MOVD	R0, R25
	MOVD	R24, R0
	SYS(57)
	ADD	$64, R23, R24
	ADD	R24, R25, R25
number:
	MOVD	$0, R0
digit:
	CMP	R25, R24
	BGE	killed
	MOVBU	(R24), R1
	ADD	$1, R24, R24
	SUBS	$'0', R1, R1
	BLT	space
	MOVD	$10, R2
	MUL	R2, R0, R0
	ADD	R1, R0, R0
	B	digit
space:
	CBZ	R0, number
	MOVD	$9, R1
	SYS(129)
	B	number
killed:
	// wait4(-1, nil, 0, nil)
	MOVD	$-1, R0
	MOVD	$0, R1
	MOVD	$0, R2
	MOVD	$0, R3
	SYS(260)
	CMP	$0, R0
	BGT	again
lost:
	MOVD	R21, R0
	SYS(94)

child:
	SUBS	$1, R22, R22
	BNE	fork
	// setsid()
	SYS(157)
	// prctl(PR_SET_PDEATHSIG, SIGKILL)
	MOVD	$1, R0
	MOVD	$9, R1
	SYS(167)
	// rt_sigprocmask(SIG_SETMASK, &old, nil, 8)
	MOVD	$2, R0
	ADD	$24, R23, R1
	MOVD	$0, R2
	MOVD	$8, R3
	SYS(135)
	// execve(argv[2], argv+3, envp)
	MOVD	0(R19), R3
	ADD	$16, R19, R2
	ADD	R3<<3, R2, R2
	MOVD	24(R19), R0
	ADD	$32, R19, R1
	SYS(221)
failed:
	NEG	R0, R0
report:
	// write(3, &errno, 4); exit_group(127)
	MOVW	R0, 0(R23)
	MOVD	$3, R0
	MOVD	R23, R1
	MOVD	$4, R2
	SYS(64)
	MOVD	$127, R0
	SYS(94)

shared:
	MOVD	16(R19), R1
	MOVBU	1(R1), R2
	CBZ	R2, mounted
visible:
	NEG	R0, R0
	ORR	$0x10000, R0, R0
	B	report

	// keeperEnd
	WORD	$0x636e756a
	WORD	$0x00726f74
	WORD	$0x00646e65
	WORD	$0x0badc0de

// The address of the code itself: a reference from Go would give that of a
// wrapper around it.
DATA ·keeperPC+0(SB)/8, $·keeper(SB)
GLOBL ·keeperPC(SB), NOPTR, $8
