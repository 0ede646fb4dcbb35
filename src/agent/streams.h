// Names of the random streams of this room.
#ifndef PSI_AGENT_STREAMS_H
#define PSI_AGENT_STREAMS_H

enum {
    AGENT_STREAM_COLLECT = 0x61677401, // by episode: what a random agent does
    AGENT_STREAM_ACTIONS,              // by episode: exploration, and choices among equals
    AGENT_STREAM_BATCH,                // by update
    AGENT_STREAM_EVALUATE,             // by episode that is not learnt from
    AGENT_STREAM_BOOTSTRAP             // by repetition
};

#endif
