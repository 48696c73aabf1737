"""The playground: condensation as it happens, in a browser (``condensation play``).

The path of one frame, from the player of the page and back to its pictures:

1. ``page/player.js``: the last frame has come, so the player asks for the next one.
2. ``page/link.js``: the request gets an id and goes over the websocket as JSON.
3. ``_server.py``: the connection parses it once and finds what to do.
4. ``_executors.py``: a thread for frames takes the task.
5. ``_session.py``: the session finds the next moment and asks for its frame.
6. ``_runs.py``: the moment is in the recording (``_recording.py``), or the run trains on.
7. ``_frame.py``: the builder measures the layer and compares it with its prediction (``_forecast.py``).
8. ``_messages.py``: header and arrays become one binary message, which the connection sends.
9. ``page/link.js``: the arrays become typed arrays, and the request is answered.
10. ``page/player.js``: in the next animation frame, the player gives the frame to the cards.
11. ``page/cards.js``: each view in ``page/views/`` draws its picture.

A recording (``condensation play --export``) has the same messages, kept: ``_recorder.py`` collects them, ``_tracks.py``
makes their arrays small, ``_bundle.py`` puts the page into one file with them, ``_static.py`` writes it. In the page,
``page/recorded.js`` then answers in place of ``page/link.js``, and nothing else is different.

The other files: ``_settings.py`` (the controls), ``_presets.py`` and ``presets.toml`` (what the page offers),
``_answers.py`` (messages about a run and a layer), ``_library.py`` (the user's runs and sweeps), ``_export.py``,
``_access.py`` (host and token), ``_clients.py`` and ``_connections.py`` (limits on pages, work and connections),
``_log.py``, ``_memory.py``.
"""
