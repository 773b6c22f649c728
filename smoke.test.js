// The smoke test of the extension, for `xk6 lint`. It needs no server, because a refused connection causes an event.
import { check } from 'k6';
import { EventSource, Ledger, hold, open } from 'k6/x/soak';
import { connect } from 'k6/x/handshake';
import { burst } from 'k6/x/requests';

export const options = { thresholds: { checks: ['rate==1'] } };

export default function () {
  check([open, hold, Ledger, connect, burst], { 'functions are exported': (all) => all.every((f) => typeof f === 'function') });
  const source = new EventSource('http://127.0.0.1:1/', { reconnect: false });
  source.onerror = (e) => check(e, { 'a refused connection closes the source': () => e.reason === 'refused' && source.readyState === EventSource.CLOSED });
}
