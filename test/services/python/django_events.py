"""A Django project with django-eventstream, as its README sets it up, and a view that publishes."""

import json
import os

import django
from django.conf import settings
from django.http import HttpResponse
from django.urls import include, path

import serving

given = serving.arguments(
    data=(".", "folder of the database"), history=("yes", "no: without a storage, so nothing is resumed")
)

settings.configure(
    SECRET_KEY="a key for tests, which is no secret",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django_eventstream"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.sqlite3",
            "NAME": os.path.join(given.data, "events.sqlite3"),
            # As Django's documentation has it for several writers: without, one of two at a time fails at once.
            "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE", "init_command": "PRAGMA journal_mode=WAL;"},
        }
    },
    **({"EVENTSTREAM_STORAGE_CLASS": "django_eventstream.storage.DjangoModelStorage"} if given.history == "yes" else {}),
)
django.setup()

import django_eventstream.urls  # noqa: E402: it wants the settings
from django.core.asgi import get_asgi_application  # noqa: E402
from django.core.management import call_command  # noqa: E402


def publish(request, channel):
    django_eventstream.send_event(channel, "message", json.loads(request.body))
    return HttpResponse(status=204)


urlpatterns = [
    path("events/<channel>/", include(django_eventstream.urls)),
    path("publish/<channel>", publish),
]

if __name__ == "__main__":
    call_command("migrate", verbosity=0)
    serving.serve(get_asgi_application(), given.listen)
