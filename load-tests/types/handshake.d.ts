/**
 * Connections of which each is a TCP and a **full** TLS handshake of its own: no reuse, no
 * resumption. TCP, TLS and the first answer are timed apart, and each failure has a cause.
 *
 * k6's own options apply: `tlsAuth` for the client's certificate, `tlsVersion`,
 * `insecureSkipTLSVerify`, `rps`, `hosts`, blocked hosts, `--local-ips`. A local authority is made
 * known by the environment: `SSL_CERT_FILE=certs/ca.pem`.
 *
 * **Metrics**
 *
 * | metric | kind | meaning |
 * |---|---|---|
 * | `handshake_tcp` | trend, ms | dial (name resolution included) to the TCP connection |
 * | `handshake_tls` | trend, ms | the TLS handshake, until the client is done with it |
 * | `handshake_answer` | trend, ms | request to the end of the answer, on a connection that is there |
 * | `handshake_failed` | counter | connections that came to nothing, tag `cause` ({@link Cause}) |
 * | `handshake_sent` | counter, bytes | on the wire, of all connections up to their latest answer: TLS records, without the headers of TCP and IP |
 * | `handshake_received` | counter, bytes | the same, from the server |
 * | `handshake_tls_sent` | counter, bytes | of these, what TLS handshakes took that came about |
 * | `handshake_tls_received` | counter, bytes | |
 * | `handshake_open` | gauge | connections open in this process, at the moment one more had opened |
 *
 * Tags: those of the VU, and `tags`.
 */
declare module 'k6/x/handshake' {
  /**
   * Before TCP is there: `dns`, `refused`, `unreachable`, `tcp_timeout`, `tcp_reset`, `no_ports` (this
   * host has no ephemeral port left for that address), `no_descriptors` (this process has no file
   * descriptor left).
   *
   * During TLS: `server_certificate` (we refuse the server's), `client_certificate` (the server refuses
   * ours, or that we show none; in TLS 1.3 it says so instead of the answer), `tls_alert` (any other
   * alert of the server), `tls_timeout`, `tls_reset` (it hung up), `tls` (it does not speak TLS).
   *
   * After it: `resumed` (no full handshake), `answer_timeout`, `answer_reset`, `status` (not 200),
   * `answer` (no HTTP). Any time: `interrupted` (k6 ended the iteration).
   */
  export type Cause =
    | 'dns' | 'refused' | 'unreachable' | 'tcp_timeout' | 'tcp_reset' | 'no_ports' | 'no_descriptors'
    | 'server_certificate' | 'client_certificate' | 'tls_alert' | 'tls_timeout' | 'tls_reset' | 'tls'
    | 'resumed' | 'answer_timeout' | 'answer_reset' | 'status' | 'answer' | 'interrupted';

  /** An unknown name throws. */
  export interface Parameters {
    /** The connection stays open after its first answer, until {@link Connection.close} or the iteration's end. */
    hold?: boolean;
    /** From the dial to the end of the answer, and for each {@link Connection.ask}. Default `"10s"`. */
    timeout?: number | string;
    /** In place of k6's `tlsAuth`: a pair in PEM, or null to show none at all. */
    certificate?: { cert: string; key: string } | null;
    tags?: Record<string, string>;
  }

  export interface Connection {
    /** The handshakes came about, and the server answered 200. */
    readonly ok: boolean;
    /** '' where `ok`. */
    readonly cause: Cause | '';
    /** The cause in words. */
    readonly message: string;
    /** 0 where it did not come that far; so are the other times. */
    readonly tcpMs: number;
    readonly tlsMs: number;
    /** Of the latest answer. */
    readonly answerMs: number;
    /** Of the latest answer, 0 where there was none. */
    readonly status: number;
    /** Such as `"TLS 1.3"`. */
    readonly version: string;
    /** Such as `"TLS_AES_128_GCM_SHA256"`. */
    readonly cipher: string;
    /** Of the key exchange, such as `"X25519MLKEM768"`. */
    readonly group: string;
    /** Asks again, on a connection that was kept open; false, and the connection closed, where the answer is not 200. */
    ask(): boolean;
    /** Closes a connection that was kept open. */
    close(): void;
  }

  /**
   * Connects, asks for the URL and reads the answer; the VU waits for it. Only an answer proves
   * that the server took the client's certificate: in TLS 1.3 a client is done before the server has
   * looked at it.
   *
   * @throws in the init context, and for wrong arguments. A failure to connect does not throw: see `cause`.
   *
   * @example
   * import { connect } from 'k6/x/handshake';
   *
   * export const options = { tlsAuth: [{ cert: open('client.pem'), key: open('client-key.pem') }] };
   *
   * export default function () {
   *   const c = connect('https://localhost:8443/healthz');
   *   if (!c.ok) {
   *     console.error(`${c.cause}: ${c.message}`);
   *   }
   * }
   */
  export function connect(url: string, parameters?: Parameters): Connection;
}
