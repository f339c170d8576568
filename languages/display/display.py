# What a program shows: `display(x)`, and the figures and pictures of libraries that show them by themselves. Each is a file in one
# folder; their numbers are their order, their extensions their types. `install` prepares a program for it.
import builtins
import os
import sys

FOLDER = value['FOLDER']
# Bytes of one file and of all together, and how many files.
MOST = 8 << 20
ALL = 30 << 20
FILES = 50
PIXELS = 4000
TYPES = {'image/png': 'png', 'image/jpeg': 'jpg', 'image/gif': 'gif', 'image/webp': 'webp', 'image/svg+xml': 'svg', 'text/html': 'html', 'application/json': 'json', 'text/plain': 'txt'}

shown = []
owner = None


def display(*things, **_):
    """Shows pictures, figures, tables and anything else."""
    for thing in things:
        kind, data = rendered(thing)
        save(kind, data)


def save(kind, data):
    data = data if isinstance(data, bytes) else str(data).encode('utf-8', 'backslashreplace')
    os.makedirs(FOLDER, exist_ok=True)
    names = os.listdir(FOLDER)
    number = max([int(name[:3]) for name in names if name[:3].isdigit()], default=0) + 1
    room = ALL - sum(os.path.getsize(FOLDER + name) for name in names)
    if len(data) > min(MOST, room):
        kind, data = 'txt', b'[%d bytes of %s are left out: too large]' % (len(data), kind.encode())
    if number <= FILES:
        with open(f'{FOLDER}{number:03}.{kind}', 'xb') as file:
            file.write(data)


def rendered(thing):
    """The extension and the data of what shows a thing best."""
    figure = figure_of(thing)
    if figure is not None:
        shown.append(figure)
        return 'png', figure_png(figure)
    if is_image(thing):
        return 'png', image_png(thing)
    if family(thing) == 'plotly' and hasattr(thing, 'to_html'):
        return plotly(thing)
    for name, kind in (('_repr_png_', 'png'), ('_repr_jpeg_', 'jpg'), ('_repr_svg_', 'svg')):
        data = representation(thing, name)
        if data:
            return kind, data
    data = value['as_table'](thing, family(thing))
    if data:
        return 'txt', data
    bundle = representation(thing, '_repr_mimebundle_')
    if isinstance(bundle, dict):
        for mime in TYPES:
            if mime in bundle:
                return TYPES[mime], binary(bundle[mime]) if mime.startswith('image/') else bundle[mime]
    data = representation(thing, '_repr_markdown_')
    if data:
        return 'txt', data
    data = representation(thing, '_repr_html_')
    if data:
        return 'html', data
    data = representation(thing, '_repr_json_')
    if data is not None:
        import json
        return 'json', json.dumps(data, default=str)
    return 'txt', thing if isinstance(thing, str) else repr(thing)


def representation(thing, name):
    method = None if isinstance(thing, type) else getattr(thing, name, None)
    if method is None:
        return None
    try:
        data = method()
    except Exception:
        return None
    if name == '_repr_mimebundle_' or name == '_repr_json_':
        return data[0] if isinstance(data, tuple) else data
    data = data[0] if isinstance(data, tuple) and data else data
    return binary(data) if name in ('_repr_png_', '_repr_jpeg_') else data


def binary(data):
    if isinstance(data, str) and not data.lstrip().startswith('<'):
        import base64
        return base64.b64decode(data)
    return data


def family(thing):
    return (type(thing).__module__ or '').partition('.')[0]


def figure_of(thing):
    """The figure of matplotlib that a thing is or belongs to."""
    if family(thing) not in ('matplotlib', 'seaborn', 'mpl_toolkits'):
        return None
    if hasattr(thing, 'savefig') and hasattr(thing, 'canvas'):
        return thing
    figure = getattr(thing, 'figure', None)
    return figure if hasattr(figure, 'canvas') else None


def figure_png(figure):
    import io
    import warnings
    file = io.BytesIO()
    width, height = figure.get_size_inches()
    dpi = min(figure.dpi, PIXELS / max(width, height))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        figure.savefig(file, format='png', dpi=dpi, bbox_inches='tight')
    return file.getvalue()


def is_image(thing):
    module = sys.modules.get('PIL.Image')
    return module is not None and isinstance(thing, module.Image)


def image_png(image):
    import io
    if image.mode not in ('1', 'L', 'LA', 'I', 'P', 'RGB', 'RGBA', 'I;16'):
        image = image.convert('RGB')
    while True:
        file = io.BytesIO()
        image.save(file, format='PNG')
        if file.tell() <= MOST or min(image.size) < 2:
            return file.getvalue()
        image = image.resize([max(1, side // 2) for side in image.size])


def plotly(figure):
    """A picture if kaleido can draw one, which needs a browser; else a page, and a text about it after that."""
    from importlib.util import find_spec
    if find_spec('kaleido'):
        try:
            return 'png', figure.to_image(format='png')
        except Exception:
            pass
    save('html', figure.to_html(include_plotlyjs='cdn'))
    return 'txt', about_plotly(figure)


def about_plotly(figure):
    def points(trace):
        sizes = [len(trace[name]) for name in ('x', 'y', 'z', 'values', 'lat', 'r') if name in trace and trace[name] is not None]
        return f' ({max(sizes)} points)' if sizes else ''

    def of(trace):
        try:
            return trace.type + points(trace)
        except Exception:
            return trace.type
    title = figure.layout.title.text
    traces = [of(trace) for trace in figure.data[:10]]
    more = ', ...' if len(figure.data) > 10 else ''
    named = f' "{title[:200]}"' if title else ''
    return f'plotly figure{named}: {", ".join(traces)}{more}. It is shown as a page; for a picture, add the packages plotly<6 and kaleido==0.2.1.'


def shows_value(thing):
    """Whether a last value is a picture, or belongs to a figure that is shown at the end."""
    things = thing if isinstance(thing, (list, tuple)) else [thing]
    if things and all(family(it) in ('matplotlib', 'seaborn', 'mpl_toolkits') for it in things):
        if figure_of(thing) is thing and thing not in shown:
            display(thing)
        install_exit()
        return True
    if isinstance(thing, type) or things is thing:
        return False
    if is_image(thing) or family(thing) == 'plotly' and hasattr(thing, 'to_html') or any(hasattr(thing, name) for name in ('_repr_png_', '_repr_svg_')):
        kind, data = rendered(thing)
        if kind in ('png', 'jpg', 'svg', 'html') or family(thing) == 'plotly':
            save(kind, data)
            return True
    return False


def at_prompt(thing):
    """A last value as Python's own prompt shows it, nothing if it is a picture; one that has a page leaves that too, for notebooks."""
    if family(thing) != 'builtins' or isinstance(thing, (list, tuple)):
        if shows_value(thing):
            return ''
        page = representation(thing, '_repr_html_')
        if isinstance(page, str) and len(page) < 1 << 17:
            os.makedirs(FOLDER, exist_ok=True)
            with open(FOLDER + 'value.html', 'x', encoding='utf-8', errors='replace') as file:
                file.write(page)
    return repr(thing)


def open_figures():
    helpers = sys.modules.get('matplotlib._pylab_helpers')
    managers = helpers.Gcf.get_all_fig_managers() if helpers else []
    return [manager.canvas.figure for manager in managers]


def show_figures(*_, **__):
    """Instead of `plt.show()`: as there, the figures are gone afterwards."""
    for figure in open_figures():
        if figure not in shown:
            display(figure)
    sys.modules['matplotlib.pyplot'].close('all')


def show_rest():
    if os.getpid() != owner:
        return
    for figure in open_figures():
        if figure not in shown:
            try:
                display(figure)
            except Exception:
                pass


def end_call():
    """At the end of a session's call: what it has drawn is shown, and gone as in a notebook."""
    show_rest()
    if 'matplotlib.pyplot' in sys.modules:
        sys.modules['matplotlib.pyplot'].close('all')
    shown.clear()


def install_exit():
    """Before what the libraries do at the end: exit functions are called in the reverse order."""
    global owner
    if owner is None:
        import atexit
        owner = os.getpid()
        atexit.register(show_rest)


def with_pyplot(module):
    module.show = show_figures
    install_exit()


def with_pillow(module):
    module.Image.show = lambda self, *_, **__: display(self)


def with_plotly(module):
    module.BaseFigure.show = lambda self, *_, **__: display(self)


def with_ipython(module):
    module.display = display


AFTER = {'matplotlib': None, 'matplotlib.pyplot': with_pyplot, 'PIL.Image': with_pillow, 'plotly.basedatatypes': with_plotly, 'IPython.core.display_functions': with_ipython}


class Finder:
    """Finds nothing by itself: it has what others find prepared when it is loaded."""

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name not in AFTER:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not cls and hasattr(finder, 'find_spec') else None
            if spec is not None:
                try:
                    cls.wrap(name, spec.loader)
                except Exception:
                    pass
                return spec
        return None

    @staticmethod
    def wrap(name, loader):
        execute = loader.exec_module

        def exec_module(module):
            # There is no screen: matplotlib would look for one, kind by kind.
            sets = name == 'matplotlib' and 'MPLBACKEND' not in os.environ
            if sets:
                os.environ['MPLBACKEND'] = 'agg'
            try:
                execute(module)
            finally:
                if sets:
                    os.environ.pop('MPLBACKEND', None)
            prepare(name, module)

        loader.exec_module = exec_module


def prepare(name, module):
    try:
        if AFTER[name]:
            AFTER[name](module)
    except Exception:
        pass


def install():
    if not hasattr(builtins, 'display'):
        builtins.display = display
    for name in AFTER:
        if name in sys.modules:
            prepare(name, sys.modules[name])
    sys.meta_path.insert(0, Finder)
