//! The kinds of trouble.

use std::fmt;

/// Something that is done to the program, or to what it depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Trouble {
    /// `kill -9`, and a new process.
    Kill,
    /// SIGSTOP, and SIGCONT seconds later.
    Freeze,
    /// SIGTERM, and a new process.
    Restart,
    /// The disk is full for seconds.
    FullDisk,
    /// The disk is full, and the process is killed meanwhile.
    KillOnFullDisk,
    /// Some writes do not reach the disk: `fdatasync` and `fsync` fail with EIO.
    FailingSync,
    /// Each of them takes a fifth of a second longer.
    SlowSync,
    /// The clock of the machine jumps on by a minute and a half.
    ClockForward,
    /// It jumps back by five seconds.
    ClockBack,
    /// The name server says that there is no such name, fails, is silent, or names a place where
    /// nobody listens.
    LyingNames,
    /// The name of receivers leads to a host that swallows packets: nobody accepts or refuses.
    SwallowedPackets,
    /// The process may open hardly more files and connections than it has.
    FewDescriptors,
    /// The process gets hardly more memory than it has.
    LittleMemory,
    /// A former release takes over, and later this one again.
    OtherRelease,
}

impl Trouble {
    /// All kinds that need nothing but this machine.
    pub const ALL: [Self; 13] = [
        Self::Kill,
        Self::Freeze,
        Self::Restart,
        Self::FullDisk,
        Self::KillOnFullDisk,
        Self::FailingSync,
        Self::SlowSync,
        Self::ClockForward,
        Self::ClockBack,
        Self::LyingNames,
        Self::SwallowedPackets,
        Self::FewDescriptors,
        Self::LittleMemory,
    ];

    /// Whether an event may arrive twice because of it: the program is kept from writing down that
    /// it has arrived, or from seeing its answer in time.
    pub(crate) fn explains_a_second_arrival(self) -> bool {
        match self {
            Self::Kill
            | Self::Freeze
            | Self::FullDisk
            | Self::KillOnFullDisk
            | Self::FailingSync
            | Self::ClockForward
            | Self::LittleMemory => true,
            Self::Restart
            | Self::SlowSync
            | Self::ClockBack
            | Self::LyingNames
            | Self::SwallowedPackets
            | Self::FewDescriptors
            | Self::OtherRelease => false,
        }
    }

    /// Whether the process may end by itself because of it.
    pub(crate) fn may_end_the_process(self) -> bool {
        self == Self::LittleMemory
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kill => "kill -9",
            Self::Freeze => "frozen for seconds (SIGSTOP)",
            Self::Restart => "restarted in order",
            Self::FullDisk => "full disk",
            Self::KillOnFullDisk => "kill -9 while the disk is full",
            Self::FailingSync => "fsync fails",
            Self::SlowSync => "fsync is slow",
            Self::ClockForward => "clock 90 s forward",
            Self::ClockBack => "clock 5 s back",
            Self::LyingNames => "name server lies",
            Self::SwallowedPackets => "packets are swallowed",
            Self::FewDescriptors => "descriptors run out",
            Self::LittleMemory => "memory runs out",
            Self::OtherRelease => "former release and back",
        })
    }
}
