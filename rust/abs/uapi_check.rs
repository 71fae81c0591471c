// SPDX-License-Identifier: GPL-2.0

//! Proves, when the module is compiled, that the Rust structures of the user interface are the C ones.

use super::bindings as c;
use core::mem::offset_of;
use weir_core::uapi as rust;

/// Checks the size, and the offset of every field. A field that one side lacks does not compile; that
/// both have none but these follows from the sizes, since there are no holes.
macro_rules! same {
    ($c:ident, $rust:ident { $($field:ident),+ $(,)? }) => {
        const _: () = {
            assert!(size_of::<c::$c>() == size_of::<rust::$rust>());
            $(assert!(offset_of!(c::$c, $field) == offset_of!(rust::$rust, $field));)+
        };
    };
}

same!(
    weir_page_header,
    PageHeader {
        magic,
        stream_id,
        timestamp_begin,
        timestamp_end,
        content_size,
        packet_size,
        packet_seq_num,
        events_discarded,
        cpu_id,
        flags,
        lost_begin,
        lost_end,
        lost,
    }
);
same!(weir_record_header, RecordHeader { type_, misc, size });
same!(
    weir_sample_id,
    SampleId {
        pid,
        tid,
        time,
        cpu,
        reserved,
        id
    }
);
same!(
    weir_sample,
    Sample {
        header,
        id,
        ip,
        pid,
        tid,
        time,
        cpu,
        reserved,
        period
    }
);
same!(
    weir_fork,
    Fork {
        header,
        pid,
        ppid,
        tid,
        ptid,
        time,
        sample_id
    }
);
same!(
    weir_comm,
    Comm {
        header,
        pid,
        tid,
        comm,
        sample_id
    }
);
same!(
    weir_raw,
    Raw {
        header,
        len,
        reserved,
        sample_id
    }
);
same!(
    weir_channel_req,
    ChannelReq {
        size,
        flags,
        model,
        mode,
        clock,
        page_size,
        pages,
        watermark,
        max_latency_ns,
    }
);
same!(
    weir_status_req,
    StatusReq {
        size,
        cpu,
        pages,
        nested,
        lost,
        lost_begin,
        lost_end
    }
);
same!(
    weir_clock_req,
    ClockReq {
        size,
        clock,
        mult,
        shift,
        base,
        ns
    }
);
same!(weir_mark_req, MarkReq { size, flags, time });
same!(weir_mark, Mark { header, time });
same!(weir_attach_req, AttachReq { size, flags, name });
same!(weir_event, EventHead { header, time });
same!(weir_freeze_req, FreezeReq { size, frozen });
same!(
    weir_layout_req,
    LayoutReq {
        size,
        queues,
        share,
        slots,
        page_size,
        reserved,
        positions_size,
        slots_size,
        pages_size
    }
);
same!(weir_cursor, Cursor { major, minor });
same!(
    weir_inject_req,
    InjectReq {
        size,
        collection,
        flags,
        stop,
        start,
        len,
        read,
        next,
        skipped,
    }
);
same!(
    weir_counter_req,
    CounterReq {
        size,
        flags,
        scope,
        target,
        attrs,
        count,
        id
    }
);
same!(weir_counter_ctl, CounterCtl { size, id, value });
same!(
    weir_counter_value,
    CounterValue {
        id,
        cpu,
        value,
        enabled,
        running,
        age,
        lost,
        throttled,
        flags,
        reserved
    }
);
same!(
    weir_counter_read,
    CounterRead {
        size,
        flags,
        id,
        count,
        values
    }
);
same!(
    weir_throttle,
    Throttle {
        header,
        time,
        id,
        stream_id,
        sample_id
    }
);
