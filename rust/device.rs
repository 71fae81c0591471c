// SPDX-License-Identifier: GPL-2.0

//! `/dev/weir`: the file operations, and what each ioctl does.

#[cfg(CONFIG_PERF_EVENTS)]
mod counters;
#[cfg(not(CONFIG_PERF_EVENTS))]
#[path = "device/no_counters.rs"]
mod counters;
mod request;

use crate::{
    abs::{
        self,
        device::{
            Poll,
            Readiness,
            Splice, //
        },
        lender::Lender,
        locked_memory::LockedMemory,
        pipe::Pipe,
        rights,
        wait_queue::PollTable,
    },
    capi,
    channel::{
        Attachment,
        Channel,
        Options,
        PollTimer, //
    },
    inject, //
};
use counters::Counters;
use kernel::{
    fs::{
        File,
        Kiocb, //
    },
    ioctl::{
        _IOC_NR,
        _IOC_TYPE, //
    },
    iov::IovIterDest,
    miscdevice::{
        MiscDevice,
        MiscDeviceRegistration, //
    },
    mm::virt::VmaNew,
    prelude::*,
    seq_file::SeqFile,
    sync::{
        new_mutex,
        Arc,
        Mutex,
        SetOnce, //
    },
};
use request::Request;
use weir_core::uapi::{
    self,
    AttachReq,
    ChannelReq,
    ClockReq,
    FreezeReq,
    InjectReq,
    LayoutReq,
    MarkReq,
    StatusReq, //
};

/// One open of the device: at most one channel, and its counters.
#[pin_data]
pub(crate) struct OpenFile {
    channel: SetOnce<Arc<Channel>>,
    attachment: SetOnce<Attachment>,
    /// Made when pages are first spliced.
    lender: SetOnce<Lender<Channel>>,
    #[pin]
    counters: Counters,
    #[pin]
    timer: Mutex<PollTimer>,
}

impl OpenFile {
    /// The channel.
    ///
    /// # Errors
    ///
    /// `EBADFD` before it was made.
    pub(crate) fn channel(&self) -> Result<&Arc<Channel>> {
        self.channel.as_ref().ok_or(EBADFD)
    }

    fn create(&self, request: &mut ChannelReq) -> Result {
        if self.channel.as_ref().is_some() {
            return Err(EBUSY);
        }
        let options = Options::new(request)?;
        rights::allow_cpu()?;
        let locked = LockedMemory::charge(options.bytes())?;
        let channel = Channel::new(options, Some(locked))?;
        if !self.channel.populate(channel) {
            return Err(EBUSY);
        }
        options.grant(request);
        Ok(())
    }

    fn attach(&self, request: &AttachReq) -> Result {
        if request.flags != 0 {
            return Err(EINVAL);
        }
        capi::named::check(&request.name)?;
        if self.channel.as_ref().is_some() {
            return Err(EBUSY);
        }
        rights::allow_cpu()?;
        let channel = capi::named::find(&request.name)?;
        let attachment = Attachment::new(channel.clone())?;
        if !self.channel.populate(channel) {
            return Err(EBUSY);
        }
        // Whoever makes the channel this file's is alone in doing so.
        self.attachment.populate(attachment);
        Ok(())
    }

    /// What pages of the channel belong to while they are in pipes; none if the channel lends none, or the
    /// kernel lacks the memory, in which case they are copied.
    fn lender(&self) -> Option<&Lender<Channel>> {
        let channel = self.channel.as_ref()?;
        if self.lender.as_ref().is_none() && channel.lends() {
            // Of two that are made at the same time one is dropped.
            self.lender.populate(Lender::new(channel.clone()).ok()?);
        }
        self.lender.as_ref()
    }

    fn status(&self, request: &mut StatusReq) -> Result {
        let status = self.channel()?.status(request.cpu as usize)?;
        request.pages = status.pages;
        request.nested = status.nested;
        request.lost = status.lost.lost;
        request.lost_begin = status.lost.begin;
        request.lost_end = status.lost.end;
        Ok(())
    }
}

#[vtable]
impl MiscDevice for OpenFile {
    type Ptr = Pin<KBox<Self>>;

    fn open(_file: &File, _device: &MiscDeviceRegistration<Self>) -> Result<Self::Ptr> {
        KBox::pin_init(
            pin_init!(Self {
                channel: SetOnce::new(),
                attachment: SetOnce::new(),
                lender: SetOnce::new(),
                counters <- Counters::new(),
                timer <- new_mutex!(None, "weir_timer"),
            }),
            GFP_KERNEL,
        )
    }

    fn read_iter(kiocb: Kiocb<'_, Self::Ptr>, iov: &mut IovIterDest<'_>) -> Result<usize> {
        let nonblocking = abs::device::is_nonblocking(&kiocb);
        kiocb.file().channel()?.read(iov, nonblocking)
    }

    fn show_fdinfo(this: Pin<&Self>, seq: &SeqFile, _file: &File) {
        if let Ok(channel) = this.channel() {
            channel.show(seq);
        }
    }

    fn mmap(this: Pin<&Self>, _file: &File, vma: &VmaNew) -> Result {
        this.channel()?.map(vma)
    }

    fn ioctl(this: Pin<&Self>, _file: &File, cmd: u32, arg: usize) -> Result<isize> {
        if _IOC_TYPE(cmd) != uapi::IOC_MAGIC {
            return Err(ENOTTY);
        }
        match _IOC_NR(cmd) {
            uapi::IOC_CHANNEL_CREATE => Request::<ChannelReq>::update(arg, |r| this.create(r)),
            uapi::IOC_CHANNEL_STATUS => Request::<StatusReq>::update(arg, |r| this.status(r)),
            uapi::IOC_CHANNEL_FLUSH => this.channel()?.flush(),
            uapi::IOC_CHANNEL_ATTACH => Request::<AttachReq>::update(arg, |r| this.attach(r)),
            uapi::IOC_CHANNEL_CLOCK => {
                let channel = this.channel()?;
                Request::<ClockReq>::update(arg, |r| {
                    channel.clock(r);
                    Ok(())
                })
            }
            uapi::IOC_CHANNEL_MARK => {
                let channel = this.channel()?;
                Request::<MarkReq>::update(arg, |r| channel.mark(r))
            }
            uapi::IOC_CHANNEL_FREEZE => {
                let channel = this.channel()?;
                Request::<FreezeReq>::update(arg, |r| channel.freeze(r.frozen))
            }
            uapi::IOC_CHANNEL_LAYOUT => {
                let channel = this.channel()?;
                Request::<LayoutReq>::update(arg, |r| {
                    channel.layout(r);
                    Ok(())
                })
            }
            uapi::IOC_INJECT => {
                let channel = this.channel()?;
                Request::<InjectReq>::update(arg, |r| inject::inject(channel, r))
            }
            nr @ (uapi::IOC_COUNTER_CREATE
            | uapi::IOC_COUNTER_ENABLE
            | uapi::IOC_COUNTER_DISABLE
            | uapi::IOC_COUNTER_RELEASE
            | uapi::IOC_COUNTER_READ
            | uapi::IOC_COUNTER_PERIOD
            | uapi::IOC_COUNTER_REFRESH
            | uapi::IOC_COUNTER_RESET) => this.counters.ioctl(this.channel()?, nr, arg),
            _ => Err(ENOTTY),
        }?;
        Ok(0)
    }
}

impl Poll for OpenFile {
    fn poll(this: Pin<&Self>, file: &File, table: &mut PollTable<'_>) -> Readiness {
        match this.channel() {
            Ok(channel) => channel.poll(file, table, &mut this.timer.lock()),
            Err(_) => Readiness::Error,
        }
    }
}

impl Splice for OpenFile {
    fn splice(
        this: Pin<&Self>,
        pipe: &mut Pipe<'_>,
        len: usize,
        nonblocking: bool,
    ) -> Result<usize> {
        let this = this.get_ref();
        this.channel()?
            .splice(pipe, len, this.lender(), nonblocking)
    }
}
