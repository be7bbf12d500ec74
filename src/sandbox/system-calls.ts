// A seccomp filter. It denies system calls that ffmpeg does not need and that attack the kernel. They fail with EPERM, not with a signal,
// so that a library which only probes them continues. Classic BPF (linux/filter.h), assembled here: a list and a few comparisons.

type Numbers = { x64: number | undefined; arm64: number | undefined }

const call = (x64: number | undefined, arm64: number | undefined = x64): Numbers => ({ x64, arm64 })
const onX64 = (x64: number): Numbers => ({ x64, arm64: undefined })

const SOCKET = { x64: 41, arm64: 198 } as const

/** Numbers from the kernel's tables: arch/x86/entry/syscalls/syscall_64.tbl, include/uapi/asm-generic/unistd.h. */
export const BLOCKED_CALLS: Readonly<Record<string, Numbers>> = {
  // No connections. Descriptors that are open at the start may be used.
  socket: SOCKET,
  socketpair: call(53, 199),
  // No other processes: ffmpeg works with threads alone (see `clone` below).
  fork: onX64(57),
  vfork: onX64(58),
  ptrace: call(101, 117),
  process_vm_readv: call(310, 270),
  process_vm_writev: call(311, 271),
  kcmp: call(312, 272),
  pidfd_getfd: call(438),
  // Parts of the kernel in which most sandbox escapes were found.
  bpf: call(321, 280),
  perf_event_open: call(298, 241),
  userfaultfd: call(323, 282),
  io_uring_setup: call(425),
  io_uring_enter: call(426),
  io_uring_register: call(427),
  keyctl: call(250, 219),
  add_key: call(248, 217),
  request_key: call(249, 218),
  personality: call(135, 92),
  modify_ldt: onX64(154),
  name_to_handle_at: call(303, 264),
  open_by_handle_at: call(304, 265),
  fanotify_init: call(300, 262),
  // No further namespaces, no mounts.
  unshare: call(272, 97),
  setns: call(308, 268),
  mount: call(165, 40),
  umount2: call(166, 39),
  pivot_root: call(155, 41),
  chroot: call(161, 51),
  open_tree: call(428),
  move_mount: call(429),
  fsopen: call(430),
  fsconfig: call(431),
  fsmount: call(432),
  fspick: call(433),
  mount_setattr: call(442),
  // For administrators only.
  init_module: call(175, 105),
  finit_module: call(313, 273),
  delete_module: call(176, 106),
  kexec_load: call(246, 104),
  kexec_file_load: call(320, 294),
  reboot: call(169, 142),
  swapon: call(167, 224),
  swapoff: call(168, 225),
  acct: call(163, 89),
  quotactl: call(179, 60),
  quotactl_fd: call(443),
  syslog: call(103, 116),
}

const ARCHITECTURES = {
  x64: { audit: 0xc000003e, clone: 56, clone3: 435 },
  arm64: { audit: 0xc00000b7, clone: 220, clone3: 435 },
} as const

/** Calls of the x32 ABI on x86-64: a second number for the same calls. */
const X32_BIT = 0x40000000
const CLONE_THREAD = 0x00010000
/** CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET. */
const NEW_NAMESPACES = 0x7e020080
const STARTS_OTHERS: readonly string[] = ['fork', 'vfork', 'socketpair']

// linux/bpf_common.h and linux/seccomp.h
const LOAD = 0x20 // BPF_LD | BPF_W | BPF_ABS
const IF_EQUAL = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
const IF_AT_LEAST = 0x35 // BPF_JMP | BPF_JGE | BPF_K
const IF_ANY_BIT = 0x45 // BPF_JMP | BPF_JSET | BPF_K
const AND = 0x54 // BPF_ALU | BPF_AND | BPF_K
const RETURN = 0x06 // BPF_RET | BPF_K
const ALLOW = 0x7fff0000
const REFUSE_WITH = 0x00050000
const EPERM = 1
const ENOSYS = 38
/** Offsets in `struct seccomp_data`. The low half of an argument comes first: both architectures are little-endian. */
const NUMBER_AT = 0
const ARCHITECTURE_AT = 4
const FIRST_ARGUMENT_AT = 16
const SECOND_ARGUMENT_AT = 24
// linux/net.h: the other bits of a type are flags
const AF_INET = 2
const SOCK_STREAM = 1
const SOCK_TYPE_MASK = 0xf

type Row = { code: number; ifTrue: number; ifFalse: number; k: number }

const load = (at: number): Row => ({ code: LOAD, ifTrue: 0, ifFalse: 0, k: at })
const end = (k: number): Row => ({ code: RETURN, ifTrue: 0, ifFalse: 0, k })
const refuse = (errno: number): Row => end(REFUSE_WITH | errno)
/** The rows run when the comparison holds, and are passed over when it does not. */
const when = (code: number, k: number, rows: readonly Row[]): Row[] => [{ code, ifTrue: 0, ifFalse: rows.length, k }, ...rows]
const unless = (code: number, k: number, rows: readonly Row[]): Row[] => [{ code, ifTrue: rows.length, ifFalse: 0, k }, ...rows]

/**
 * The filter for an architecture of Node's, as `bwrap --seccomp` reads it.
 * @returns undefined where the calls of the architecture are not listed here
 */
export function systemCallFilter({
  architecture = process.arch,
  mayStartOthers = false,
  mayConnect = false,
}: {
  architecture?: string
  mayStartOthers?: boolean
  /** By TCP over IPv4, in the sandbox’s network. */
  mayConnect?: boolean
} = {}): Buffer | undefined {
  if (architecture !== 'x64' && architecture !== 'arm64') return undefined
  const { audit, clone, clone3 } = ARCHITECTURES[architecture]
  const blocked = Object.entries(BLOCKED_CALLS).filter(([name]) => !(mayStartOthers && STARTS_OTHERS.includes(name)))
  const numbers = blocked.flatMap(([, call]) => call[architecture] ?? [])
  return encode([
    load(ARCHITECTURE_AT),
    ...unless(IF_EQUAL, audit, [refuse(EPERM)]), // a 32-bit program's numbers mean other calls
    load(NUMBER_AT),
    ...(architecture === 'x64' ? when(IF_AT_LEAST, X32_BIT, [refuse(EPERM)]) : []),
    ...(mayConnect ? when(IF_EQUAL, SOCKET[architecture], ONLY_TCP) : []),
    ...numbers.flatMap((number) => when(IF_EQUAL, number, [refuse(EPERM)])),
    // Its flags lie in memory, where no filter sees them. Where the kernel has no clone3, the C library takes clone.
    ...when(IF_EQUAL, clone3, [refuse(ENOSYS)]),
    ...when(IF_EQUAL, clone, [
      load(FIRST_ARGUMENT_AT),
      ...(mayStartOthers ? when(IF_ANY_BIT, NEW_NAMESPACES, [refuse(EPERM)]) : unless(IF_ANY_BIT, CLONE_THREAD, [refuse(EPERM)])),
    ]),
    end(ALLOW),
  ])
}

const ONLY_TCP: readonly Row[] = [
  load(FIRST_ARGUMENT_AT),
  ...unless(IF_EQUAL, AF_INET, [refuse(EPERM)]),
  load(SECOND_ARGUMENT_AT),
  { code: AND, ifTrue: 0, ifFalse: 0, k: SOCK_TYPE_MASK },
  ...unless(IF_EQUAL, SOCK_STREAM, [refuse(EPERM)]),
  end(ALLOW),
]

/** `struct sock_filter`: u16 code, u8 jt, u8 jf, u32 k. */
function encode(rows: readonly Row[]): Buffer {
  const program = Buffer.alloc(rows.length * 8)
  for (const [index, { code, ifTrue, ifFalse, k }] of rows.entries()) {
    program.writeUInt16LE(code, index * 8)
    program.writeUInt8(ifTrue, index * 8 + 2)
    program.writeUInt8(ifFalse, index * 8 + 3)
    program.writeUInt32LE(k, index * 8 + 4)
  }
  return program
}
