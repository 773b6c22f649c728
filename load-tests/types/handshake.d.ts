/**
 * Connections with a TCP handshake and a **full** TLS handshake each: no reuse, no resumption. TCP, TLS and the first
 * response are timed separately, and each failure has a cause.
 *
 * k6's own options apply: `tlsAuth` for the client's certificate, `tlsVersion`,
 * `insecureSkipTLSVerify`, `rps`, `hosts`, blocked hosts, `--local-ips`. To trust a local authority, set
 * `SSL_CERT_FILE=certs/ca.pem` in the environment.
 *
 * **Metrics**
 *
 * | metric | kind | meaning |
 * |---|---|---|
 * | `handshake_tcp` | trend, ms | dial (name resolution included) to the TCP connection |
 * | `handshake_tls` | trend, ms | the TLS handshake, until the client has completed it |
 * | `handshake_answer` | trend, ms | request to the end of the response, on an open connection |
 * | `handshake_failed` | counter | failed connections, tag `cause` ({@link Cause}) |
 * | `handshake_sent` | counter, bytes | bytes sent by all connections up to their latest response or failure: TLS records, without the headers of TCP and IP |
 * | `handshake_received` | counter, bytes | bytes received, likewise |
 * | `handshake_tls_sent` | counter, bytes | bytes sent by completed TLS handshakes |
 * | `handshake_tls_received` | counter, bytes | bytes received by completed TLS handshakes |
 * | `handshake_open` | gauge | open connections of this process, after each new connection |
 *
 * Samples have the tags of the VU and `tags`.
 */
declare module 'k6/x/handshake' {
  /**
   * Before the TCP connection: `dns`, `refused` (also for any other error of the dial), `unreachable`, `tcp_timeout`,
   * `tcp_reset`, `no_ports` (this host has no free ephemeral port for that address), `no_descriptors` (this process has
   * no free file descriptor), `no_ipv6` (the address is an IPv6 address, and this host has none).
   *
   * During TLS: `server_certificate` (the client refuses the server's certificate), `client_certificate` (the server
   * refuses the client's certificate, or its absence; in TLS 1.3 this error arrives in place of the response),
   * `tls_alert` (any other alert of the server), `tls_timeout`, `tls_reset` (the server closed the connection), `tls`
   * (any other error, such as a server without TLS).
   *
   * After TLS: `resumed` (not a full handshake), `answer_timeout`, `answer_reset`, `status` (not 200), `answer` (any
   * other error, such as a response that is not HTTP). At any time: `interrupted` (k6 ended the iteration).
   */
  export type Cause =
    | 'dns' | 'refused' | 'unreachable' | 'tcp_timeout' | 'tcp_reset' | 'no_ports' | 'no_descriptors' | 'no_ipv6'
    | 'server_certificate' | 'client_certificate' | 'tls_alert' | 'tls_timeout' | 'tls_reset' | 'tls'
    | 'resumed' | 'answer_timeout' | 'answer_reset' | 'status' | 'answer' | 'interrupted';

  /** An unknown parameter throws. */
  export interface Parameters {
    /**
     * Keeps the connection open after its first response, until {@link Connection.close} or the end of the iteration.
     */
    hold?: boolean;
    /** Time limit from the dial to the end of the response, and of each {@link Connection.ask}. Default `"10s"`. */
    timeout?: number | string;
    /** Replaces k6's `tlsAuth`: certificate and key in PEM, or null to present no certificate. */
    certificate?: { cert: string; key: string } | null;
    tags?: Record<string, string>;
  }

  export interface Connection {
    /** Whether the handshakes succeeded and the latest response had status 200. */
    readonly ok: boolean;
    /** '' if `ok`. */
    readonly cause: Cause | '';
    /** The error message of the failure. */
    readonly message: string;
    /** Duration of the dial. This and the other times are 0 for phases that never completed. */
    readonly tcpMs: number;
    readonly tlsMs: number;
    /** Duration of the latest request. */
    readonly answerMs: number;
    /** Status of the latest response, 0 without one. */
    readonly status: number;
    /** Such as `"TLS 1.3"`. */
    readonly version: string;
    /** Such as `"TLS_AES_128_GCM_SHA256"`. */
    readonly cipher: string;
    /** Of the key exchange, such as `"X25519MLKEM768"`. */
    readonly group: string;
    /**
     * Sends another request on an open connection. If the request fails, or its response has a status other than 200,
     * `ask` closes the connection and returns false.
     */
    ask(): boolean;
    /** Closes an open connection. */
    close(): void;
  }

  /**
   * Connects, requests the URL and reads the response. It blocks the VU. Only a response proves that the server
   * accepted the client's certificate: in TLS 1.3 a client completes its handshake before the server has checked the
   * certificate.
   *
   * @throws in the init context, and for invalid arguments. A failed connection does not throw: see `cause`.
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
