import base64
import hashlib
import hmac

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from puntual.domain.webhook_keys import keys_of, signature_headers
from tests.builders import NINE, a_tenant

ROOT = b"the root"


def test_a_key_is_derived_as_rfc_5869_says() -> None:
    (key,) = keys_of(a_tenant(), root=ROOT)
    derived = HKDF(SHA256(), 32, salt=b"puntual webhook keys", info=b"acme\x1f1").derive(ROOT)
    assert key.secret == derived
    assert key.text == "whsec_" + base64.b64encode(derived).decode()


def test_the_new_key_comes_first_and_the_one_before_it_stays_until_the_next_rotation() -> None:
    first, second, third = (
        keys_of(a_tenant(key_generation=generation), root=ROOT) for generation in (1, 2, 3)
    )
    assert [key.generation for key in third] == [3, 2]
    assert second[1:] == first
    assert third[1] == second[0]


def test_tenants_generations_and_roots_share_no_key() -> None:
    secrets = [
        key.secret
        for tenant in ("acme", "acme1", "globex")
        for root in (ROOT, b"another")
        for key in keys_of(a_tenant(tenant, key_generation=12), root=root)
    ]
    assert len(set(secrets)) == len(secrets) == 12


def test_a_key_does_not_show_its_secret_where_it_is_printed() -> None:
    (key,) = keys_of(a_tenant(), root=ROOT)
    assert key.text not in repr(key)
    assert repr(key.secret) not in repr(key)


def test_the_published_example_of_standard_webhooks_is_signed_as_published() -> None:
    """The specification's own example, in its symmetric scheme."""
    secret = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    headers = signature_headers(
        (secret,),
        message_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        sent_at=NINE.fromtimestamp(1614265330, tz=NINE.tzinfo),
        body=b'{"test": 2432232314}',
    )
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_there_is_a_signature_for_each_key_in_their_order() -> None:
    headers = signature_headers((b"new", b"old"), message_id="m", sent_at=NINE, body=b"body")
    signed = f"m.{headers['webhook-timestamp']}.body".encode()
    expected = [
        base64.b64encode(hmac.digest(key, signed, hashlib.sha256)).decode()
        for key in (b"new", b"old")
    ]
    assert headers["webhook-signature"] == f"v1,{expected[0]} v1,{expected[1]}"
