/// <reference path="./sse.d.ts" />
/// <reference path="./sse-source.d.ts" />
/// <reference path="./sse-options.d.ts" />
/// <reference path="./sse-open.d.ts" />
/// <reference path="./soak.d.ts" />
/// <reference path="./soak-streams.d.ts" />
/// <reference path="./handshake.d.ts" />
/// <reference path="./requests.d.ts" />
/// <reference path="./globals.d.ts" />

/**
 * Types of the modules in `bin/k6`. These files are the documentation of the modules:
 * units, errors, examples, and the section of the standard that defines each
 * member. "HTML" is the HTML Living Standard, section 9.2 Server-sent events,
 * https://html.spec.whatwg.org/multipage/server-sent-events.html.
 *
 * Times are in milliseconds, unless the name or the comment of a member states another unit.
 */
